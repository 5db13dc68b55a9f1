"""What commands print as JSON and YAML: one model for each kind of fact. docs/reference/json.md is made from them."""
