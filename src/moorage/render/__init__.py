"""Text formats and bundles, pure: values in, text and manifests out."""
