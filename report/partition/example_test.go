package partition_test

import (
	"encoding/json"
	"fmt"

	"github.com/mcompress/mcompress/report/partition"
)

// A manifest says which file produces each value: none does for inputs of the model.
func Example() {
	var m partition.Manifest
	err := json.Unmarshal([]byte(`{"version": 1, "model": "m.onnx", "stages": [
		{"file": "m.stage1.onnx", "inputs": [{"name": "x"}], "outputs": ["h"]},
		{"file": "m.stage2.onnx", "inputs": [{"name": "h", "from": "m.stage1.onnx"}], "outputs": ["y"]}],
		"outputs": [{"name": "y", "from": "m.stage2.onnx"}]}`), &m)
	in := m.Stages[1].Inputs[0]
	fmt.Println(in.Name, "of", in.From, err)
	// Output: h of m.stage1.onnx <nil>
}
