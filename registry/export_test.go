package registry

import (
	"context"
	"maps"
	"slices"
)

// Schemes are those of the kinds that every program has, and those that it may import.
func Schemes() []string {
	return slices.AppendSeq(slices.Collect(maps.Keys(imported)), maps.Keys(folders))
}

// HubFiles makes the files of a folder for the Hub in a folder, and returns their number.
func HubFiles(ctx context.Context, a *Artifact, dir string) (int, error) {
	h := &hub{artifact: a, dir: dir}
	err := h.files(ctx)
	return len(h.list), err
}

// Unregister removes a kind.
func Unregister(scheme string) { kinds.Delete(scheme) }

// AdoptCard returns the base model and the task that the card of a model has.
func AdoptCard(path string) (base, task string, err error) {
	h := &hub{}
	err = h.adopt(path)
	return h.card.BaseModel, h.card.PipelineTag, err
}
