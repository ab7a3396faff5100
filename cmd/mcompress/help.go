package main

// Flags come in the order of their declaration, each category under its heading.

const appHelp = `{{.Name}}: {{.Usage}}

usage: {{.Name}} COMMAND [FLAGS] ARGUMENTS

commands:{{range .VisibleCommands}}{{if ne .Name "help"}}
  {{.Name}}{{"\t"}}{{.Usage}}{{end}}{{end}}
  help{{"\t"}}this, or what a command does

flags, before or after the command:{{range .VisibleFlags}}{{if .GetCategory}}
  {{.}}{{end}}{{end}}
  --help, -h{{"\t"}}the same

exit codes:
  0{{"\t"}}done
  1{{"\t"}}reading or writing failed (missing file, full disk, interruption): a retry may help
  2{{"\t"}}invalid command line or option
  3{{"\t"}}a gate did not hold: the result is NAME.rejected.onnx
  4{{"\t"}}the input is malformed or unsupported: a retry does not help
  70{{"\t"}}the program itself failed (internal error): please report it
With several models the first of 1, 2, 70, 4, 3 that occurs is the exit code.
`

const commandHelp = `{{.HelpName}}: {{.Usage}}

usage: {{.HelpName}} [FLAGS]{{if .ArgsUsage}} {{.ArgsUsage}}{{end}}
{{if .Description}}
{{.Description}}
{{end}}{{$category := ""}}{{range .VisibleFlags}}{{if and .GetCategory (ne .GetCategory $category)}}{{$category = .GetCategory}}
{{$category}}:
{{end}}{{if .GetCategory}}  {{.}}
{{end}}{{end}}
flags of all commands: see mcompress --help
`
