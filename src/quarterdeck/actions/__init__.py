"""How each step is carried out, through the ports."""
