"""What is checked before a plane is changed."""
