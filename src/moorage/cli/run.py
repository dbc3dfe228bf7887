"""`moorage run`: the operator against a Kubernetes cluster."""

from __future__ import annotations

from typing import Annotated

from moorage.cli.options import AllowedNetworksOption, ContextOption, KubeconfigOption, span
from moorage.cli.signature import Option


def command(
    kinds: Annotated[
        list[str] | None, Option("--kinds", help="Only these kinds (repeat the option); default: all.")
    ] = None,
    namespace: Annotated[
        str | None, Option("--namespace", "-n", help="Only this namespace; default: the whole cluster.")
    ] = None,
    leader_elect: Annotated[
        bool, Option("--leader-elect/--no-leader-elect", help="Elect a leader among replicas by a Lease.")
    ] = True,
    webhooks: Annotated[bool, Option("--webhooks/--no-webhooks", help="Serve the admission webhooks.")] = True,
    webhook_bind: Annotated[str, Option(help="Address of the admission webhooks.")] = "0.0.0.0:9443",
    webhook_url: Annotated[
        str | None, Option(help="URL by which the API server reaches the webhooks; default: by the Service.")
    ] = None,
    webhook_certificates: Annotated[
        str | None,
        Option(
            metavar="FOLDER",
            help="tls.crt and tls.key of the webhooks, read again when they change, as cert-manager mounts them; default: certificates of our own.",
        ),
    ] = None,
    metrics_bind: Annotated[str, Option(help="Address of /metrics.")] = "0.0.0.0:8080",
    health_bind: Annotated[str, Option(help="Address of /healthz and /readyz.")] = "0.0.0.0:8081",
    workers: Annotated[int, Option(min=1, help="Passes at once for each kind.")] = 4,
    resync: Annotated[str, Option(help="How often everything is looked at again.")] = "10m",
    federation_metadata_allow_cidrs: AllowedNetworksOption = "",
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
) -> None:
    """Run the operator for all kinds against a Kubernetes cluster, inside it or outside.

    Example:  moorage run --no-webhooks --kubeconfig ~/.kube/config
    """
    from moorage.cli.operator import RunOptions, allowed_networks, run_operator

    run_operator(
        RunOptions(
            kinds=tuple(kinds or ()),
            namespace=namespace or "",
            leader_elect=leader_elect,
            webhooks=webhooks,
            webhook_bind=webhook_bind,
            webhook_url=webhook_url,
            webhook_certificates=webhook_certificates,
            metrics_bind=metrics_bind,
            health_bind=health_bind,
            workers=workers,
            resync=span("--resync", resync),
            allowed=allowed_networks(federation_metadata_allow_cidrs),
            kubeconfig=kubeconfig,
            context=context,
        )
    )
