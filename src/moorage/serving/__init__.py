"""The one HTTP server of the house: the embedded API server, webhooks, health and metrics answer through it."""
