package pass

// slowdowns are the measured ones, written by `make compat`.
var slowdowns = []slowdown{
	{"dynamic-int8", nil, "openvino", 0.80, 0.49},
	{"dynamic-int8", nil, "tract", 0.23, 0.04},
	{"static-int8", nil, "opencv", 0.84, 0.37},
	{"static-int8", nil, "tract", 0.85, 0.74},
	{"weight-int8", []Option{{Name: "form", Value: "matmulnbits"}}, "web", 0.89, 0.09},
	{"weight-int4", []Option{{Name: "form", Value: "matmulnbits"}}, "ort-1.23", 0.88, 0.38},
	{"weight-int4", []Option{{Name: "form", Value: "matmulnbits"}}, "ort-1.31", 0.88, 0.40},
	{"weight-int4", []Option{{Name: "form", Value: "matmulnbits"}}, "web", 0.30, 0.05},
	{"float16", []Option{{Name: "compute", Value: "float16"}}, "ort-1.17", 0.44, 0.11},
	{"float16", []Option{{Name: "compute", Value: "float16"}}, "ort-1.20", 0.57, 0.32},
	{"float16", []Option{{Name: "compute", Value: "float16"}}, "ort-1.22", 0.59, 0.29},
	{"float16", []Option{{Name: "compute", Value: "float16"}}, "tract", 0.30, 0.01},
}
