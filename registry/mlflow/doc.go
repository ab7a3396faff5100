// Package mlflow adds MLflow to the library: where it is imported, references mlflow://HOST/NAME[@ALIAS] are accepted.
//
//	import _ "github.com/mcompress/mcompress/registry/mlflow"
//
// Credentials are those of the environment, as MLflow's own client reads them. The program mcompress imports it.
package mlflow
