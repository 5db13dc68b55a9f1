"""Who acted for each set of controllers when, from what the locks and the apiservers wrote down. Pure."""
