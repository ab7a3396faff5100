"""Signatures by model-signing, bills of materials by cyclonedx-python-lib, and model cards by huggingface_hub."""
import pathlib


def sign(folder, signature, key):
    """Signs all files of a folder, or a single file, as `model_signing sign key` does."""
    from model_signing import hashing, signing

    config = hashing.Config().set_ignored_paths(paths=_inside(folder, signature))
    signing.Config().use_elliptic_key_signer(private_key=key).set_hashing_config(config).sign(folder, signature)


def verify_signature(folder, signature, key, unsigned):
    """Verifies a signature as `model_signing verify key` does; unsigned ignores files that are not signed."""
    from model_signing import hashing, verifying

    config = hashing.Config().set_ignored_paths(paths=_inside(folder, signature))
    verifier = verifying.Config().use_elliptic_key_verifier(public_key=key).set_hashing_config(config)
    verifier.set_ignore_unsigned_files(unsigned).verify(pathlib.Path(folder), pathlib.Path(signature))


def _inside(folder, path):
    folder, path = pathlib.Path(folder).resolve(), pathlib.Path(path).resolve()
    return [path.relative_to(folder)] if path.is_relative_to(folder) else []
