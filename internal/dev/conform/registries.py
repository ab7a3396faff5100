"""Registries: the OCI client of ORAS."""


def pull_oras(reference, folder):
    """Pulls an artifact by `oras pull` into a folder and returns the paths of the files."""
    import oras.client

    return oras.client.OrasClient(hostname=reference.split("/")[0], insecure=True).pull(target=reference, outdir=folder)
