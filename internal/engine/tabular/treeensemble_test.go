package tabular

import (
	"testing"

	"github.com/mcompress/mcompress/ir"
)

func TestTreeEnsemble(t *testing.T) {
	checkCases(t, "TreeEnsemble", []operatorCase{
		{
			name: "AVERAGE", version: 5, source: runtime,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 1, 1, 0), number1("n_targets", 2),
				number1("aggregate_function", 0), number1("post_transform", 0),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{0, 1}, 2),
				"leaf_weights": ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.4}, 4),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.05, 0.15, 0.25, 0, 0, 0.25, 0.2, 0.1, 0, 0.25}, 5, 2)},
		},
		{
			name: "SUM", version: 5, source: runtime,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 1, 1, 0), number1("n_targets", 2),
				number1("aggregate_function", 1), number1("post_transform", 0),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{0, 1}, 2),
				"leaf_weights": ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.4}, 4),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.3, 0.5, 0, 0, 0.5, 0.4, 0.2, 0, 0.5}, 5, 2)},
		},
		{
			name: "MIN", version: 5, source: runtime,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 1, 1, 0), number1("n_targets", 2),
				number1("aggregate_function", 2), number1("post_transform", 0),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{0, 1}, 2),
				"leaf_weights": ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.4}, 4),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.3, 0.1, 0, 0, 0.2, 0.4, 0.2, 0, 0.2}, 5, 2)},
		},
		{
			name: "MAX", version: 5, source: runtime,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 1, 1, 0), number1("n_targets", 2),
				number1("aggregate_function", 3), number1("post_transform", 0),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{0, 1}, 2),
				"leaf_weights": ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.4}, 4),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.3, 0.4, 0, 0, 0.3, 0.4, 0.2, 0, 0.3}, 5, 2)},
		},
		{
			name: "NONE", version: 5, source: runtime,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 0, 1, 1), number1("n_targets", 2),
				number1("aggregate_function", 1), number1("post_transform", 0),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{0, 1}, 2),
				"leaf_weights": ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.4}, 4),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.3, 0.1, 0.4, 0.2, 0.3, 0.2, 0.4, 0.2, 0.3}, 5, 2)},
		},
		{
			name: "SOFTMAX", version: 5, source: transformed,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 0, 1, 1), number1("n_targets", 2),
				number1("aggregate_function", 1), number1("post_transform", 1),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{0, 1}, 2),
				"leaf_weights": ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.4}, 4),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.450166, 0.549834, 0.4255575, 0.5744425, 0.4750208, 0.5249792,
				0.45016602, 0.549834, 0.4750208, 0.5249792}, 5, 2)},
		},
		{
			name: "LOGISTIC", version: 5, source: transformed,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 0, 1, 1), number1("n_targets", 2),
				number1("aggregate_function", 1), number1("post_transform", 2),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{0, 1}, 2),
				"leaf_weights": ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.4}, 4),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.5249792, 0.5744425, 0.5249792, 0.59868765, 0.549834, 0.5744425,
				0.549834, 0.59868765, 0.549834, 0.5744425}, 5, 2)},
		},
		{
			name: "SOFTMAX_ZERO", version: 5, source: runtime,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 0, 1, 1), number1("n_targets", 2),
				number1("aggregate_function", 1), number1("post_transform", 3),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{0, 1}, 2),
				"leaf_weights": ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.4}, 4),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.450166, 0.549834, 0.42555746, 0.5744425, 0.47502083, 0.5249792,
				0.450166, 0.54983395, 0.47502083, 0.5249792}, 5, 2)},
		},
		{
			name: "PROBIT", version: 5, source: transformed,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 0, 1, 1), number1("n_targets", 2),
				number1("aggregate_function", 1), number1("post_transform", 4),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{0, 1}, 2),
				"leaf_weights": ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.4}, 4),
			},
			in: []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{-1.2815516, -0.5244005, -1.2815516, -0.2533471, -0.8416212,
				-0.5244005, -0.8416212, -0.2533471, -0.8416212, -0.5244005}, 5, 2)},
		},
		{
			name: "BRANCH_LEQ", version: 5, source: runtime,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 1, 1, 0), number1("n_targets", 2),
				number1("aggregate_function", 1), number1("post_transform", 0),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{0, 0}, 2),
				"leaf_weights": ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.4}, 4),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.3, 0.1, 0.3, 0, 0.5, 0, 0.5, 0, 0.5}, 5, 2)},
		},
		{
			name: "BRANCH_LT", version: 5, source: runtime,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 1, 1, 0), number1("n_targets", 2),
				number1("aggregate_function", 1), number1("post_transform", 0),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{1, 1}, 2),
				"leaf_weights": ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.4}, 4),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.3, 0.4, 0.2, 0, 0.5, 0.4, 0.2, 0, 0.5}, 5, 2)},
		},
		{
			name: "BRANCH_GTE", version: 5, source: runtime,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 1, 1, 0), number1("n_targets", 2),
				number1("aggregate_function", 1), number1("post_transform", 0),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{2, 2}, 2),
				"leaf_weights": ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.4}, 4),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.4, 0.2, 0.1, 0.3, 0.5, 0, 0, 0.5, 0.1, 0.3}, 5, 2)},
		},
		{
			name: "BRANCH_GT", version: 5, source: runtime,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 1, 1, 0), number1("n_targets", 2),
				number1("aggregate_function", 1), number1("post_transform", 0),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{3, 3}, 2),
				"leaf_weights": ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.4}, 4),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.4, 0.2, 0.4, 0.2, 0.5, 0, 0.4, 0.2, 0.1, 0.3}, 5, 2)},
		},
		{
			name: "BRANCH_EQ", version: 5, source: runtime,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 1, 1, 0), number1("n_targets", 2),
				number1("aggregate_function", 1), number1("post_transform", 0),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{4, 4}, 2),
				"leaf_weights": ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.4}, 4),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.4, 0.2, 0.1, 0.3, 0.4, 0.2, 0, 0.5, 0, 0.5}, 5, 2)},
		},
		{
			name: "BRANCH_NEQ", version: 5, source: runtime,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 1, 1, 0), number1("n_targets", 2),
				number1("aggregate_function", 1), number1("post_transform", 0),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{5, 5}, 2),
				"leaf_weights": ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.4}, 4),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.1, 0.3, 0.4, 0.2, 0.1, 0.3, 0.5, 0, 0.1, 0.3}, 5, 2)},
		},
		{
			name: "BRANCH_MEMBER", version: 5, source: reference,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 1, 1, 0), number1("n_targets", 2),
				number1("aggregate_function", 1), number1("post_transform", 0),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{6, 6}, 2),
				"leaf_weights":      ir.ArrayOf([]float32{0.1, 0.2, 0.3, 0.4}, 4),
				"membership_values": ir.ArrayOf([]float32{-0.5, 2, nan32, 1, nan32}, 5),
			},
			in:   []*ir.Array{ir.ArrayOf([]float32{-0.5, 0.5, 0, 1, 2, 0, nan32, 1, 1, nan32}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float32{0.5, 0, 0, 0.5, 0.5, 0, 0, 0.5, 0, 0.5}, 5, 2)},
		},
		{
			name: "double", version: 5, source: runtime,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 1, 1, 0), number1("n_targets", 2),
				number1("aggregate_function", 1), number1("post_transform", 0),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": ir.ArrayOf([]float64{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{0, 1}, 2),
				"leaf_weights": ir.ArrayOf([]float64{0.1, 0.2, 0.3, 0.4}, 4),
			},
			in:   []*ir.Array{ir.ArrayOf([]float64{-0.5, 0.5, 0, 1, 2, 0, nan64, 1, 1, nan64}, 5, 2)},
			want: []*ir.Array{ir.ArrayOf([]float64{0.1, 0.3, 0.5, 0, 0, 0.5, 0.4, 0.2, 0, 0.5}, 5, 2)},
		},
		{
			name: "float16", version: 5, source: reference,
			attrs: []*ir.Attr{
				ints("nodes_featureids", 0, 1), ints("nodes_truenodeids", 0, 2), ints("nodes_trueleafs", 1, 1),
				ints("nodes_falsenodeids", 1, 3), ints("nodes_falseleafs", 1, 1),
				ints("nodes_missing_value_tracks_true", 0, 1),
				ints("tree_roots", 0, 1), ints("leaf_targetids", 0, 1, 1, 0), number1("n_targets", 2),
				number1("aggregate_function", 1), number1("post_transform", 0),
			},
			arrays: map[string]*ir.Array{
				"nodes_splits": halves([]float32{0, 1}, 2), "nodes_modes": ir.ArrayOf([]uint8{0, 1}, 2),
				"leaf_weights": halves([]float32{1, 2, 3, 4}, 4),
			},
			in:   []*ir.Array{halves([]float32{-1, 0, 0, 1, 2, 3}, 3, 2)},
			want: []*ir.Array{halves([]float32{1, 3, 5, 0, 4, 2}, 3, 2)},
		},
	})
}
