"""The schema language, `.pg`."""
