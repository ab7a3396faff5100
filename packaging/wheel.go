package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// wheel writes a wheel with the program as a script, so that it starts without Python (PyPA binary distribution format 1.0, core metadata 2.4,
// PEP 639 for licences, PEP 770 for the SBOM).
func (r *release) wheel(p *program) error {
	name := "mcompress-" + r.version.pep440()
	info := name + ".dist-info/"
	files := []file{{name: name + ".data/scripts/" + p.executable(), mode: 0o755, data: p.binary}}
	for _, source := range []string{"__init__.py", "__main__.py", "py.typed"} {
		data, err := r.read("packaging/python/mcompress/" + source)
		if err != nil {
			return err
		}
		files = append(files, file{name: "mcompress/" + source, data: data})
	}
	readme, err := r.read("packaging/README.md")
	if err != nil {
		return err
	}
	for _, f := range p.notices {
		files = append(files, file{name: info + "licenses/" + f.name, data: f.data})
	}
	files = append(files,
		file{name: info + "sboms/mcompress.cdx.json", data: p.sbom},
		file{name: info + "METADATA", data: r.metadata(readme)},
		file{name: info + "WHEEL", data: wheelTags(p.target.wheel)})
	files = append(files, file{name: info + "RECORD", data: record(files, info+"RECORD")})
	data, err := zipped(files, r.epoch)
	if err != nil {
		return err
	}
	return r.write(name+"-py3-none-"+p.target.wheel+".whl", data)
}

func (r *release) metadata(readme []byte) []byte {
	return fmt.Appendf(nil, `Metadata-Version: 2.4
Name: mcompress
Version: %s
Summary: Compresses ONNX models by quantization, pruning and sparse storage, and accounts for every byte
License-Expression: Apache-2.0
License-File: LICENSE
License-File: THIRD_PARTY_LICENSES.txt
Keywords: onnx,quantization,pruning,model compression
Classifier: Environment :: Console
Classifier: Intended Audience :: Developers
Classifier: Programming Language :: Python :: 3 :: Only
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Project-URL: Source, https://%s
Requires-Python: >=3.8
Provides-Extra: ort
Requires-Dist: onnxruntime>=1.17; extra == "ort"
Description-Content-Type: text/markdown

%s`, r.version.pep440(), module, readme)
}

// wheelTags is the file WHEEL, with a line for each of the compressed tags.
func wheelTags(platforms string) []byte {
	var b bytes.Buffer
	b.WriteString("Wheel-Version: 1.0\nGenerator: mcompress-packaging\nRoot-Is-Purelib: false\n")
	for platform := range strings.SplitSeq(platforms, ".") {
		b.WriteString("Tag: py3-none-" + platform + "\n")
	}
	return b.Bytes()
}

// record lists the files of the wheel with their digests, and itself without.
func record(files []file, own string) []byte {
	var b bytes.Buffer
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&b, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	b.WriteString(own + ",,\n")
	return b.Bytes()
}
