package main

// Flags come in the order of their declaration, each category under its heading.

const appHelp = `{{.Name}}: {{.Usage}}

usage: {{.Name}} COMMAND [FLAGS] ARGUMENTS

commands:{{range .VisibleCommands}}{{if ne .Name "help"}}
  {{.Name}}{{"\t"}}{{.Usage}}{{end}}{{end}}
  help{{"\t"}}this, or what a command does

flags, before or behind the command:{{range .VisibleFlags}}{{if .GetCategory}}
  {{.}}{{end}}{{end}}
  --help, -h{{"\t"}}the same

exit codes: 0 done, 1 failed, 2 usage, 3 a gate did not hold
`

const commandHelp = `{{.HelpName}}: {{.Usage}}

usage: {{.HelpName}} [FLAGS] {{.ArgsUsage}}
{{if .Description}}
{{.Description}}
{{end}}{{$category := ""}}{{range .VisibleFlags}}{{if and .GetCategory (ne .GetCategory $category)}}{{$category = .GetCategory}}
{{$category}}:
{{end}}{{if .GetCategory}}  {{.}}
{{end}}{{end}}
flags of all commands: see mcompress --help
`
