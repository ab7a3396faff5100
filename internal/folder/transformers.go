package folder

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"github.com/mcompress/mcompress/internal/atomicfile"
	"github.com/mcompress/mcompress/internal/bounded"
)

// OfTransformers lists the files that are copied with the variants of a model to root, a folder with a folder "onnx" of
// models, as transformers.js requires: those of the model's Root. Models are not copied. Nil if there is no
// configuration, or if it is in root.
func OfTransformers(model, root string) (*Folder, error) {
	from := Root(model)
	if from == "" {
		return nil, nil
	}
	models, err := modelsOf(from)
	if err != nil {
		return nil, err
	}
	f, err := openFrom(
		from,
		root,
		filepath.Join(from, filepath.Base(model)),
		filepath.Join(root, filepath.Base(model)),
		models,
	)
	if f != nil {
		f.onlyModel = false // configuration that is there stays
	}
	return f, err
}

// The keys of config.json about external data: the configuration of transformers.js, and in it the number of files of
// external data, for all models or by the name of a model.
const (
	transformersConfig = "transformers.js_config"
	externalData       = "use_external_data_format"
)

// NameExternalData lists models that have one file of external data, NAME_data, in transformers.js_config of
// config.json in a folder. Without that file it does nothing.
func NameExternalData(dir string, models []string, a atomicfile.Access) error {
	path := filepath.Join(dir, config)
	if len(models) == 0 {
		return nil
	}
	c, err := readConfig(dir, config)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	text, err := c.withExternalData(models)
	if err != nil || text == nil {
		return err
	}
	return atomicfile.Write(path, a, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}

// externalModels are the models with files of external data.
func (c *jsonFile) externalModels() []string {
	v, ok := c.valueAt([]string{transformersConfig, externalData})
	var counts map[string]json.RawMessage
	if !ok || bounded.JSON(v.raw(c.text), &counts) != nil {
		return nil
	}
	return slices.Sorted(maps.Keys(counts))
}

// withExternalData is the text with one file of external data for each of models; nil if it has that for all models.
func (c *jsonFile) withExternalData(models []string) ([]byte, error) {
	settings, counts := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	v, there := c.valueAt([]string{transformersConfig})
	if there {
		if err := bounded.JSON(v.raw(c.text), &settings); err != nil {
			return nil, err
		}
	}
	// true, or a number, is about all models: there is nothing to add.
	if bounded.JSON(settings[externalData], &counts) != nil && string(settings[externalData]) != "false" &&
		settings[externalData] != nil {
		return nil, nil
	}
	for _, name := range models {
		counts[name] = json.RawMessage("1")
	}
	var err error
	if settings[externalData], err = json.Marshal(counts); err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(settings, "  ", "  ")
	if err != nil {
		return nil, err
	}
	if there {
		return c.replaced(func(o *value) ([]byte, bool) { return text, o == v }), nil
	}
	return c.inserted(transformersConfig, text), nil
}

// inserted is the text with another first item of the object that it is.
func (c *jsonFile) inserted(key string, item []byte) []byte {
	root := c.root()
	separator := ","
	if len(c.values) == 1 {
		separator = ""
	}
	first := fmt.Sprintf("\n  %s: %s%s", quoted(key), item, separator)
	return slices.Concat(c.text[:root.start+1], []byte(first), c.text[root.start+1:])
}
