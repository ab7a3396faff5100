package pipeline_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcompress/mcompress/internal/dataset"
	"github.com/mcompress/mcompress/internal/engine"
	"github.com/mcompress/mcompress/internal/partition"
	"github.com/mcompress/mcompress/internal/pipeline"
	"github.com/mcompress/mcompress/ir"
	"github.com/mcompress/mcompress/onnx"
	results "github.com/mcompress/mcompress/report/partition"
)

// The test program is also the program of devices, some of which fail.
func TestMain(m *testing.M) {
	switch os.Getenv("PIPELINE_TEST_DEVICE") {
	case "serve":
		if err := pipeline.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	case "die", "hang":
		var s pipeline.Settings
		from := gob.NewDecoder(os.Stdin)
		if from.Decode(&s) != nil || gob.NewEncoder(os.Stdout).Encode(pipeline.Reply{}) != nil {
			os.Exit(1)
		}
		var r struct{ File string }
		_ = from.Decode(&r)
		if os.Getenv("PIPELINE_TEST_DEVICE") == "die" {
			fmt.Fprintln(os.Stderr, "out of memory")
			os.Exit(7)
		}
		_, _ = io.Copy(io.Discard, os.Stdin)
		return
	}
	os.Exit(m.Run())
}

// processes starts this program; the devices of files whose names contain failing have the other mode.
func processes(t *testing.T, failing, mode string) func(context.Context, pipeline.Settings) (pipeline.Device, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, s pipeline.Settings) (pipeline.Device, error) {
		as := "serve"
		if failing != "" && strings.Contains(s.Files[0], failing) {
			as = mode
		}
		return pipeline.Start(ctx, s, "/usr/bin/env", "PIPELINE_TEST_DEVICE="+as, self)
	}
}

var fixture = filepath.Join("..", "..", "fixtures", "transformer.onnx")

func save() onnx.SaveOptions {
	return onnx.SaveOptions{Workers: 1, Memory: 8 << 20, Eval: ir.NewEval("")}
}

func stages(t *testing.T) (manifest string) {
	t.Helper()
	w, err := partition.Write(t.Context(), fixture, t.TempDir(), partition.Options{Stages: 3, By: "weights"}, save())
	if err != nil {
		t.Fatal(err)
	}
	return w.Manifest
}

func shards(t *testing.T) (manifest string) {
	t.Helper()
	w, err := partition.WriteShards(t.Context(), fixture, t.TempDir(), 2, save())
	if err != nil {
		t.Fatal(err)
	}
	return w.Manifest
}

// samples are random inputs and the outputs of the whole model.
func samples(t *testing.T, n int) (in, want []map[string]*ir.Array) {
	t.Helper()
	f, err := onnx.Open(fixture)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	e, err := engine.Open(t.Context(), f.Model, engine.Options{NoFusion: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	set, err := dataset.Generate(dataset.Inputs(f.Model.Graph),
		dataset.Random{Samples: n, Ranges: dataset.Ranges(f.Model)})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for b, err := range set.Batches(t.Context(), dataset.Order{Size: 1}) {
		if err != nil {
			t.Fatal(err)
		}
		out, err := e.Run(t.Context(), b.Inputs, nil)
		if err != nil {
			t.Fatal(err)
		}
		given := map[string]*ir.Array{}
		for name, a := range b.Inputs {
			given[name] = a.Clone()
		}
		in, want = append(in, given), append(want, out)
	}
	return in, want
}

// Stages are bit-identical to the whole model, in this process and in processes, one sample after the other and piped.
func TestStagesAreBitIdentical(t *testing.T) {
	manifest := stages(t)
	in, want := samples(t, 6)
	for name, start := range map[string]func(context.Context, pipeline.Settings) (pipeline.Device, error){"here": nil, "processes": processes(t, "", "")} {
		p, err := pipeline.Open(t.Context(), manifest, pipeline.Options{Exact: true, Start: start})
		if err != nil {
			t.Fatal(err)
		}
		var running sync.WaitGroup
		for i := range in {
			running.Go(func() {
				got, err := p.Run(t.Context(), in[i], nil)
				if err != nil || !bytes.Equal(got["logits"].Data, want[i]["logits"].Data) {
					t.Errorf("%s: sample %d differs (%v)", name, i, err)
				}
			})
		}
		running.Wait()
		for _, s := range p.Stats() {
			if s.Runs != len(in) || s.Seconds <= 0 || (s.Bytes > 0) != (start != nil) {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Ranks exchange sums only: two processes compute the outputs up to rounding.
func TestShardsInProcesses(t *testing.T) {
	in, want := samples(t, 1)
	p, err := pipeline.Open(t.Context(), shards(t), pipeline.Options{Exact: true, Start: processes(t, "", "")})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	got, err := p.Run(t.Context(), in[0], nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range ir.View[float32](got["logits"]) {
		if y := ir.View[float32](want[0]["logits"])[i]; max(x-y, y-x) > 1e-4 {
			t.Fatalf("logit %d is %g, want %g", i, x, y)
		}
	}
	if len(p.Stats()) != 2 || len(p.Inputs()) != 1 || p.Outputs()[0].Name != "logits" {
		t.Errorf("%+v, %v, %v", p.Stats(), p.Inputs(), p.Outputs())
	}
}

// A process that dies is an error that names the stage, the reason, and what it wrote.
func TestDyingStage(t *testing.T) {
	in, _ := samples(t, 1)
	p, err := pipeline.Open(t.Context(), stages(t), pipeline.Options{Start: processes(t, "stage2", "die")})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		_, err = p.Run(t.Context(), in[0], nil)
		if err == nil || err.Error() != "transformer.stage2.onnx: the process ended: exit status 7: out of memory" {
			t.Errorf("got %v", err)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// A run that is canceled returns at once, although its stage does not, and the process ends.
func TestCancelingEndsTheStage(t *testing.T) {
	in, _ := samples(t, 1)
	p, err := pipeline.Open(t.Context(), stages(t), pipeline.Options{Start: processes(t, "stage2", "hang")})
	if err != nil {
		t.Fatal(err)
	}
	cause := errors.New("interrupted")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(20*time.Millisecond, func() { cancel(cause) })
	if _, err = p.Run(ctx, in[0], nil); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// A device ends when its input ends: with its parent, however that ends.
func TestDevicesEndWithTheParent(t *testing.T) {
	in, to := io.Pipe()
	from, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- pipeline.Serve(context.Background(), in, out) }()
	manifest := stages(t)
	var r pipeline.Reply
	if err := gob.NewEncoder(to).Encode(pipeline.Settings{Folder: filepath.Dir(manifest),
		Files: []string{"transformer.stage1.onnx"}}); err != nil {
		t.Fatal(err)
	}
	if err := gob.NewDecoder(from).Decode(&r); err != nil || r.Error != "" {
		t.Fatal(err, r.Error)
	}
	_ = to.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A missing file is an error that names it, from a process too.
func TestMissingFiles(t *testing.T) {
	manifest := stages(t)
	gone := filepath.Join(filepath.Dir(manifest), "transformer.stage3.onnx")
	if err := os.Remove(gone); err != nil {
		t.Fatal(err)
	}
	for _, start := range []func(context.Context, pipeline.Settings) (pipeline.Device, error){nil, processes(t, "", "")} {
		_, err := pipeline.Open(t.Context(), manifest, pipeline.Options{Start: start})
		if err == nil || err.Error() != gone+": no such file or directory" {
			t.Errorf("got %v", err)
		}
	}
}

// A manifest is checked before a file is opened.
func TestHostileManifests(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.shards.json")
	stage := func(file, inputs string) string {
		return `{"version":1,"stages":[{"file":"` + file + `","inputs":[` + inputs +
			`],"outputs":["y"]}],"outputs":[{"name":"y","from":"` + file + `"}]}`
	}
	segments := func(text string) string {
		return `{"version":1,"ranks":2,"segments":[` + text + `],"outputs":[{"name":"y","reduced":true}]}`
	}
	shard := `{"shards":[{"rank":0,"file":"a.onnx","outputs":["y"]},{"rank":%d,"file":"b.onnx","inputs":[%s],"outputs":[%s]}],"reductions":[{"name":"y","operation":"%s"}]}`
	for text, want := range map[string]string{
		`[]`:                     "json: cannot unmarshal array",
		`{"version":2}`:          "version 2 of the manifest is not supported",
		`{"version":1}`:          "not a manifest of stages or shards",
		stage("../x", ""):        `"../x" is not the name of a file of its own`,
		stage("..", ""):          `".." is not the name of a file of its own`,
		stage("/etc/passwd", ""): `"/etc/passwd" is not the name of a file of its own`,
		stage("a.onnx",
			`{"name":"x","from":"b.onnx"}`): `a.onnx: input "x": not an output of an earlier file "b.onnx"`,
		stage("a.onnx",
			`{"name":"y","from":"a.onnx"}`): `a.onnx: input "y": not an output of an earlier file "a.onnx"`,
		segments(fmt.Sprintf(shard, 0, ``, `"y"`,
			"sum")): "b.onnx: rank 0: there are 2, each with one file in a segment",
		segments(fmt.Sprintf(shard, 7, ``, `"y"`,
			"sum")): "b.onnx: rank 7: there are 2, each with one file in a segment",
		segments(fmt.Sprintf(shard, 1, ``, ``,
			"sum")): `reduction of "y": not an output of all files of the segment`,
		segments(fmt.Sprintf(shard, 1, `{"name":"y","reduced":true}`, `"y"`,
			"sum")): `b.onnx: input "y": no earlier reduction`,
		segments(fmt.Sprintf(shard, 1, ``, `"y"`,
			"max")): `reduction of "y": operation "max" is not supported`,
		segments(fmt.Sprintf(shard, 1, `{"name":"y","from":"a.onnx"}`, `"y"`,
			"sum")): `b.onnx: input "y": a.onnx is the file of another rank`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := pipeline.Open(t.Context(), path, pipeline.Options{}); err == nil ||
			!strings.HasPrefix(err.Error(), path+": "+want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// Values that the files do not have, and parts that do not match, are errors.
func TestManifestsThatDoNotMatchTheirFiles(t *testing.T) {
	in, _ := samples(t, 1)
	manifest := shards(t)
	text, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var m results.ShardManifest
	if err := json.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	m.Segments[0].Shards[0].Outputs = append(m.Segments[0].Shards[0].Outputs, "nothing")
	m.Outputs = []results.Result{{Name: "nothing", From: m.Segments[0].Shards[0].File}}
	if text, err = json.Marshal(m); err == nil {
		err = os.WriteFile(manifest, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.Open(t.Context(), manifest, pipeline.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if _, err := p.Run(t.Context(), in[0], nil); err == nil ||
		err.Error() != `transformer.rank0.segment1.onnx: output "nothing" is missing` {
		t.Errorf("got %v", err)
	}
	if _, err := p.Run(t.Context(), nil, nil); err == nil ||
		!strings.HasSuffix(err.Error(), `input "input_ids" is missing`) {
		t.Errorf("got %v", err)
	}
}
