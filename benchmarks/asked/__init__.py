"""The measures of what people ask for."""
