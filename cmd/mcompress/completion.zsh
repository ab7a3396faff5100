#compdef mcompress
# mcompress completion for zsh: words come from the program, file names from the shell.
_mcompress() {
	local -a candidates
	candidates=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	candidates=("${(@)candidates:#}")
	if (( ${#candidates} )); then
		compadd -a candidates
	else
		_files
	fi
}
compdef _mcompress mcompress
