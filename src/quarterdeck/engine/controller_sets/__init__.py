"""Sets of controllers: how they are declared, which manager holds them, and whether one can pass to another."""
