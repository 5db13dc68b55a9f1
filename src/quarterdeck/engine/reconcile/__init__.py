"""The loop: observe, plan, act. ``loop`` is one plane's, ``manager`` keeps all planes."""
