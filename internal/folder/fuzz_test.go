package folder

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress/internal/dev/hostile"
	"github.com/mcompress/mcompress/internal/dev/oracle"
	"github.com/mcompress/mcompress/pass"
)

// Configuration of any text is copied or refused. What is copied after layers were removed is configuration again, and no
// file is outside of the folder of the result.
func FuzzConfig(f *testing.F) {
	modules := `[{"idx":0,"name":"0","path":"","type":"a"},{"idx":1,"name":"1","path":"1_Pooling","type":"b"}]`
	for name, text := range map[string]string{genaiConfig: genai, config: hidden, modulesFile: modules} {
		for _, l := range append(hostile.Some(hostile.JSON(text), 150), hostile.Lie{Text: text}) {
			f.Add(name == genaiConfig, name == modulesFile, []byte(l.Text))
		}
	}
	f.Fuzz(func(t *testing.T, isGenai, isModules bool, text []byte) {
		name := config
		switch {
		case isGenai:
			name = genaiConfig
		case isModules:
			name = modulesFile
		}
		from := write(t, map[string]string{config: "{}", "text.onnx": "", "1_Pooling/config.json": "{}"})
		if err := os.WriteFile(filepath.Join(from, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
		around := t.TempDir()
		to := filepath.Join(around, "result")
		if err := os.Mkdir(to, 0o755); err != nil {
			t.Fatal(err)
		}
		removed := []pass.RemovedLayers{{Layers: 4, Removed: []int{1, 2}}}
		var err error
		oracle.Linear.Check(t, len(text), func() {
			_, err = publish(t, filepath.Join(from, "text.onnx"), filepath.Join(to, "text.onnx"), removed)
		})
		if entries, err := os.ReadDir(around); err != nil || len(entries) != 1 {
			t.Errorf("%v is beside the folder of the result, %v", entries, err)
		}
		if err != nil {
			return
		}
		written, err := os.ReadFile(filepath.Join(to, name))
		if err == nil && name != modulesFile && !json.Valid(written) {
			t.Errorf("%q becomes %q", text, written)
		}
	})
}
