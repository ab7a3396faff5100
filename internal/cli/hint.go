package cli

import "github.com/mcompress/mcompress/pass"

// saturation is what the products of unsigned activations and full-range signed weights
// do on x86 CPUs without VNNI.
const saturation = "hint: on x86 CPUs without VNNI, products with full-range int8 weights may saturate; if the model is to run there, use --reduce-range or --weight-type uint8"

// Hint is what is worth knowing before steps run, "" if nothing is. Who names a target knows, unless options overrule it.
func Hint(steps []pass.Options, target *pass.Target) string {
	if target != nil && !target.Overruled() {
		return ""
	}
	for _, s := range steps {
		integers := s.Method().Name == "dynamic-int8" || s.Method().Name == "static-int8"
		if integers && value(s, "weight-type") == "int8" && value(s, "reduce-range") == "false" {
			return saturation
		}
	}
	return ""
}

func value(s pass.Options, name string) string {
	for _, o := range pass.Values(s) {
		if o.Name == name {
			return o.Value
		}
	}
	return ""
}
