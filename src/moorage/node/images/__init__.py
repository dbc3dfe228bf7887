"""Images: root filesystems in folders, made once from a recipe and bound read-only into pods."""
