# mcompress completion for fish: words come from the program, file names from the shell.
function __mcompress_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] __complete $words[2..-1] 2>/dev/null
end
complete -c mcompress -a '(__mcompress_complete)'
