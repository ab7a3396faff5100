package mcompress_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/mcompress/mcompress"
)

// Each gate of the library is evaluated under its name, for a model at a path and for one that is open.
func TestEachGateIsEvaluated(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	m, err := mcompress.Open(fixture("mlp.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	first, err := m.Compress(ctx, filepath.Join(dir, "first.onnx"), step(t, "weight-int8"))
	if err != nil || first.Rejected {
		t.Fatalf("%+v, %v", first, err)
	}

	verification := mcompress.Verification{
		Data: mcompress.Data{Path: fixture("digits_test.npz"), Limit: 50}, Metric: "f1",
	}
	r := mcompress.Request{
		Models: []string{fixture("mlp.onnx")}, Output: filepath.Join(dir, "champion.onnx"),
		Steps: []mcompress.Step{step(t, "weight-int8")}, Verification: verification,
		Gates: []mcompress.Gate{
			mcompress.MinRatio(2), mcompress.MaxSize(1 << 20), mcompress.MinCoverage(0.5), mcompress.MinSQNR(10),
			mcompress.MinCosine(0.5), mcompress.MinAgreement(0.5), mcompress.MaxAccuracyDrop(0.5),
			mcompress.MaxMetricDrop(0.5), mcompress.MaxLatencyRatio(1e6),
		},
		Reports: mcompress.Reports{Formats: []string{"json"}},
	}
	evaluated(t, r, 9)
	r.Baseline, r.Output = r.Output, filepath.Join(dir, "next.onnx")
	r.Gates = []mcompress.Gate{
		mcompress.MaxBaselineSizeRatio(1.5), mcompress.MaxBaselineMetricDrop(0.5), mcompress.MaxBaselineLatencyRatio(1e6),
	}
	evaluated(t, r, 3)
}

// evaluated requires that the gates of a request hold.
func evaluated(t *testing.T, r mcompress.Request, n int) {
	t.Helper()
	res, err := r.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Report.Gates) != n {
		t.Errorf("%d gates, want %d: %+v", len(res.Report.Gates), n, res.Report.Gates)
	}
	for i, g := range res.Report.Gates {
		if g.Name != r.Gates[i].Name || !g.Held {
			t.Errorf("%s: %+v", r.Gates[i].Name, g)
		}
	}
}
