"""The reference to a Secret with fixed data keys."""

from moorage.schema.model import Model, field

DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"


class SecretRef(Model):
    """A Secret in the namespace of the resource."""

    name: str = field(doc="Name of the Secret.", min_length=1, max_length=253, pattern=DNS_SUBDOMAIN)
    key: str | None = field(
        None, doc="Stays empty: the data keys of the Secret are fixed by the field that refers to it."
    )
