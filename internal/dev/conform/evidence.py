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


def hub_upload(folder):
    """The files that huggingface_hub's upload_folder would upload from a folder. The check of the model card by the Hub is left out: it needs the network."""
    from huggingface_hub import HfApi
    from huggingface_hub.utils import DEFAULT_IGNORE_PATTERNS

    api = HfApi()
    api._validate_yaml = lambda **_: None
    files = api._prepare_upload_folder_additions(folder, path_in_repo="", ignore_patterns=DEFAULT_IGNORE_PATTERNS)
    return sorted(f.path_in_repo for f in files)


def cyclonedx(text):
    """Validates a CycloneDX 1.7 document as JSON, strictly."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    error = JsonStrictValidator(SchemaVersion.V1_7).validate_str(text)
    if error is not None:
        raise ValueError(str(error))


def provenance(text):
    """Validates an in-toto statement with SLSA provenance v1: fields that the specifications do not have are errors."""
    import json

    from google.protobuf import json_format
    from in_toto_attestation.predicates.provenance.v1 import provenance_pb2
    from in_toto_attestation.v1.statement import Statement
    from in_toto_attestation.v1.statement_pb2 import Statement as Message

    message = json_format.Parse(text, Message())
    Statement.copy_from_pb(message).validate()
    predicate = json_format.Parse(json.dumps(json.loads(text)["predicate"]), provenance_pb2.Provenance())
    if not predicate.build_definition.build_type or not predicate.run_details.builder.id:
        raise ValueError("buildType and builder.id are required")
