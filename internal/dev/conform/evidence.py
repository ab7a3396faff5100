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


def model_card(text):
    """The metadata of a model card as huggingface_hub reads it."""
    from huggingface_hub import ModelCard

    data = ModelCard(text, ignore_metadata_errors=False).data
    results = [{"metric": r.metric_type, "name": r.metric_name, "value": r.metric_value, "dataset": r.dataset_name, "task": r.task_type} for r in data.eval_results or []]
    get = data.to_dict().get
    return {
        "base_model": get("base_model", ""), "base_model_relation": get("base_model_relation", ""), "library_name": get("library_name", ""),
        "pipeline_tag": get("pipeline_tag", ""), "tags": get("tags", []), "model": data.model_name or "", "results": results,
    }
