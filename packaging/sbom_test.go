package main

import (
	"path/filepath"
	"testing"
)

// TestSBOMIsValid validates the SBOM of each program strictly, with the schemas of CycloneDX, and compares the digest with the program.
func TestSBOMIsValid(t *testing.T) {
	for _, libc := range libcs() {
		folder := unpacked(t, libc)
		runPython(t, checkSBOM, filepath.Join(folder, "mcompress.cdx.json"), filepath.Join(folder, "mcompress"))
	}
}

const checkSBOM = `
import hashlib, json, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text, program = open(sys.argv[1]).read(), open(sys.argv[2], "rb").read()
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
assert error is None, error
bom = json.loads(text)
component = bom["metadata"]["component"]
assert component["version"] == "v1.2.3-rc.1", component
assert component["hashes"] == [{"alg": "SHA-256", "content": hashlib.sha256(program).hexdigest()}], component
assert all(c["licenses"] and c["purl"] for c in bom["components"])
`
