"""Loads a registered model as users of MLflow do, and prints facts of it as JSON: mlflow_client.py ADDRESS NAME ALIAS DATA.npz LABELS."""
import json
import sys

import mlflow
import numpy as np


def main(address, name, alias, data, labels):
    mlflow.set_tracking_uri(address)
    model = mlflow.pyfunc.load_model(f"models:/{name}@{alias}")
    arrays = np.load(data)
    signature = model.metadata.signature
    outputs = model.predict({i.name: arrays[i.name] for i in signature.inputs.inputs})
    scores = outputs if isinstance(outputs, np.ndarray) else next(iter(outputs.values()))
    client = mlflow.MlflowClient()
    version = client.get_model_version_by_alias(name, alias)
    run = client.get_run(version.run_id)
    logged = client.get_logged_model(run.outputs.model_outputs[0].model_id)
    print(json.dumps({
        "accuracy": float((scores.argmax(1) == arrays[labels]).mean()), "description": version.description, "tags": version.tags, "version": version.version,
        "run": {"status": run.info.status, "metrics": run.data.metrics, "params": run.data.params},
        "model": {"status": str(logged.status), "metrics": {m.key: m.value for m in logged.metrics or []}, "params": logged.params},
        "inputs": signature.inputs.to_dict(), "outputs": signature.outputs.to_dict(),
    }))


if __name__ == "__main__":
    main(*sys.argv[1:])
