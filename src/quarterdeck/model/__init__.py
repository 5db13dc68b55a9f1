"""What is true: frozen facts about planes, sites and steps. Pure: no IO, no clock."""
