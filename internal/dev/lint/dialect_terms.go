package lint

// terms are the words that this repository replaces by those of ONNX, PyTorch and the papers. docs/glossary.md has the terms
// to use.
func terms() []term {
	values := []string{"quantize", "internal/calibrate", "internal/tune", "internal/verify", "internal/engine/quant", "distill", "docs", "README.md", "prune"}
	graph := []string{"ir", "onnx", "pass", "quantize", "prune", "sparse", "docs", "distill", "report", "internal/engine", "internal/memplan", "internal/memory", "internal/partition", "internal/calibrate"}
	return []term{
		// Program objects as people.
		{pattern: `whoever|whomever|nobody|somebody|anybody|everybody`, instead: "the user, the caller, or no such sentence (\"unused\", \"without consumer\")"},
		{pattern: `says|said|tells|told`, instead: "reports, returns, states, specifies, as given by"},
		{pattern: `asks|asked`, instead: "requests, requires, calls, queries", except: `asked questions`},
		{pattern: `wants`, instead: "requires, expects"},
		{pattern: `knows|knew`, instead: "supports, contains, depends on, has; \"known\" for facts"},
		{pattern: `judges?|judged|judging|judgement`, instead: "evaluator, test oracle, reference implementation, is evaluated"},
		{pattern: `kin`, instead: "baseline, related operators"},
		{pattern: `fates?`, instead: "result"},
		{pattern: `who`, instead: "which, that; or name the caller", except: `(?:users?|people|person|persons|engineers?|readers?|anyone|those|one|man|developers?) who`},
		{pattern: `rehearsals?|lumps?|clarity`, instead: "trial run, chunk, SQNR"},
		{pattern: `alive`, instead: "live, lifetime", except: `keep ?alive|(?:keeps?|kept) \w+ alive`},

		// Furniture for time and place.
		{pattern: `behind`, instead: "after, following, next to"},
		{pattern: `in front of`, instead: "before"},
		{pattern: `stands?|stood|standing`, instead: "is, is stored, represents", except: `standing wave`},
		{pattern: `lies`, instead: "is, is stored"},
		{pattern: `falls?|fell`, instead: "is pruned, decreases, is rejected", except: `falls? back(?: to)?`},
		{pattern: `goes|went`, instead: "passes, continues, is written, decreases", except: `went (?:wrong|from)`},
		{pattern: `ways? back`, instead: "backward pass"},
		{pattern: `beside`, instead: "next to, compared with, in addition to"},
		{pattern: `(?:keep|kept|keeps|held|holds?|told|tells?|sets?|hangs?|stands?|stays?|stay|all|constants|tests) apart`, instead: "separate, held-out, except"},
		{pattern: `rooms?`, instead: "buffer, space, memory", except: `bedrooms?`},
		{pattern: `comes? (?:behind|to none|to nothing|to zero)`, instead: "follows, is zero"},

		// What-clauses.
		{pattern: `what every byte|what became of|what becomes of`, instead: "accounts for every byte, the result of"},
		{pattern: `what (?:is|are) so|is what is so`, instead: "the actual code"},
		{pattern: `what (?:it|they|this|that|each|one) (?:is|are) (?:worth|held against|for|told|shown|asked)`, instead: "a noun: importance, reference, purpose"},
		{pattern: `what (?:a|an|the|each|every|all|no|any) \w+ (?:would|wants?|says?|holds?|takes?|costs?|needs?|gives?|makes?|adds?|leaves?|keeps?|reads?|asks?|becomes?|loses?|means|changes?|writes?|is|are)`, instead: "a noun (cost, requirement, output, contents)"},
		{pattern: `what (?:rounding|pruning|training|compression|quantization) \w+`, instead: "a noun (quantization error, accuracy drop)"},
		{pattern: `would (?:have )?rather`, instead: "prefers, prepacks"},
		{pattern: `(?:worth|holds?|held) against|(?:hold|holds|held) (?:it|them|this|that|each|\w+s) against|against (?:what|which)`, instead: "compared with, reference, tested against"},

		// Words of other meaning.
		{pattern: `codes?`, instead: "quantized values, quantized weights", in: values,
			except: `exit-code|(?:exit|error|reason|return|status|op|source|go|go's|python|machine|assembly|generated|dead|same|the|scalar|our|this|vector|no|bulk|in|for) codes?|codes? (?:of|generated|that|path|paths|for|points?|review|in|is|spans?|units?)|codes? with|code: pass|code\.go`,
			but:    []string{"report/escape.go"}}, // HTML's element
		{pattern: `codings?`, instead: "QuantSpec, quantized data type, encoding", in: []string{"quantize", "distill", "docs", "internal/tune", "internal/calibrate"}},
		{pattern: `made[- ]up(?: for)?|makes? up for|make up`, instead: "synthetic or random inputs; compensated (error feedback)"},
		{pattern: `rows that share a scale|rows? that shares? a scale`, instead: "block size"},
		{pattern: `(?:the|a|an|this|its|their|what|largest|smallest|whose|such|any|least) shares?|shares of|share`, instead: "fraction, ratio; the verb \"share\" is right", except: `(?:usr|local|data)/share|(?:to|that|which|can|may|they|and|must|not|do|all|both|two|of them|who|it|we|weights|values|tests|tensors|nodes|layers|operators|models|graphs|steps|methods|should|could|will|would|let|assembly|functions|workers|results|fields|options) share|shares? (?:a|an|the|one|its|their|no|equal|memory|storage|scales?|this|that|with|them|it|them|code|nothing|weights?|weight)`},
		{pattern: `grids?`, instead: "levels (of a data type), granularity, tiles", in: []string{"quantize", "internal/tune", "internal/calibrate", "internal/engine/gemm", "distill", "prune", "docs"}, except: `GridSample|Grid Sample|grid sampling|grid search|search grid`},
		{pattern: `damages?`, instead: "sensitivity, error", except: `damaged`},
		{pattern: `by lot|lots`, instead: "at random, many"},
		{pattern: `readers?`, instead: "consumer", in: graph, except: `readers? of (?:files?|samples|protobuf|formats?|the format|data|models?)|(?:io|file|random access|section|protobuf|wire|byte|csv|idx|npy|npz|buffered|the|a|new|limited|zip) readers?|readers? who|readerat|reader at`,
			but: []string{"onnx", "internal/dataset"}},
		{pattern: `moments?`, instead: "running mean and variance, Hessian; \"moments\" are Adam's", except: `(?:first|second|adam's|optimizer) (?:and second )?moments?|first_moment|second_moment|moment_1|moment_2|momentum|moments of (?:adam|adamw|lamb)`,
			in: []string{"quantize", "internal/calibrate", "internal/engine/grad", "internal/engine/linear", "docs"}},
		{pattern: `in a moment|at the moment|the moment`, instead: "now, when"},
		{pattern: `courses?`, instead: "training run, history, training loop", except: `of course`},
		{pattern: `looks? at|looked at|looking at|looked into|looks? into`, instead: "reads, inspects, checks, calibration data"},
		{pattern: `(?:win|wins|won|winning) back`, instead: "recover (accuracy)"},
		{pattern: `right answers?`, instead: "top-1 accuracy, correct predictions"},
		{pattern: `(?:to )?the same bits|to the bit`, instead: "bit-identical, bit-identically"},
		{pattern: `(?:gets?|got) (?:its|their|a|the) names?|under (?:its|their) names?`, instead: "is renamed (atomically)"},
		{pattern: `when (?:it|they) (?:is|are) whole|appears? whole|whole or not at all`, instead: "atomically"},
		{pattern: `by (?:itself|themselves)`, instead: "automatically, alone, separately"},
		{pattern: `stays? (?:a )?floats?`, instead: "kept in float"},
		{pattern: `(?:which|that) (?:is|are) no (?:layer|weight|tensor|model|method|message|float|number|constant|format)`, instead: "not a …"},
		{pattern: `this is no`, instead: "this is not a"},
		{pattern: `with the numbers that|numbers that a method`, instead: "fake quantization"},
		{pattern: `gone through|go through|went through`, instead: "is processed, iterates over"},
		{pattern: `for want of`, instead: "because X is missing"},
		{pattern: `of (?:few|many) (?:rows|samples|values|weights|elements)`, instead: "subject first: With few samples …", except: `\w+ of (?:few|many) (?:rows|samples|values|weights|elements)`},
	}
}
