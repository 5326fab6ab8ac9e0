package toolbox

// The View types are the render data of results, for programs that show results to
// people. The first key of each is kind, which names the type.

// ReadView is the render data of read.
type ReadView struct {
	Kind string `json:"kind"` // "read"
	Path string `json:"path"`
	// From and To are the first and the last shown line, counted from 1. Both are 0 if no
	// line was shown.
	From int `json:"from"`
	To   int `json:"to"`
	// Lines is the number of lines in the file, or 0 if the file is too large to count
	// them.
	Lines int `json:"lines"`
	// MIME is set for an image.
	MIME string `json:"mime,omitempty"`
	// Seen is a hash of the content of the file, if all of it was read to show the lines. With
	// it, another process knows what the session has read.
	Seen string `json:"seen,omitempty"`
}

// ChangeView is the render data of write and edit.
type ChangeView struct {
	Kind string `json:"kind"` // "change"
	Path string `json:"path"`
	// Action is created, overwritten, edited or unchanged.
	Action string `json:"action"`
	// Diff is in the unified format. Cut means that Diff is incomplete.
	Diff string `json:"diff"`
	Cut  bool   `json:"cut,omitempty"`
	// Added and Removed are numbers of lines.
	Added   int `json:"added"`
	Removed int `json:"removed"`
	// Seen is a hash of the new content. In a preview, it is one of the file as it is.
	Seen string `json:"seen,omitempty"`
}

// ListView is the render data of list.
type ListView struct {
	Kind    string `json:"kind"` // "list"
	Path    string `json:"path"`
	Entries int    `json:"entries"`
	// Cut means that there are more entries than were listed.
	Cut bool `json:"cut,omitempty"`
}

// GlobView is the render data of glob.
type GlobView struct {
	Kind    string `json:"kind"` // "glob"
	Pattern string `json:"pattern"`
	// Files are the listed files, the most recently changed first. Total is how many
	// files match.
	Files []string `json:"files"`
	Total int      `json:"total"`
}

// GrepView is the render data of grep.
type GrepView struct {
	Kind    string `json:"kind"` // "grep"
	Pattern string `json:"pattern"`
	// Files are the files with a match, in the same order as in the text.
	Files []GrepFile `json:"files"`
	// Matches is the number of matching lines.
	Matches int `json:"matches"`
	// Cut means that the search stopped at its limit.
	Cut bool `json:"cut,omitempty"`
}

// GrepFile is a file with matches.
type GrepFile struct {
	Path string `json:"path"`
	// Count is the number of matching lines.
	Count int `json:"count"`
	// Lines are the matching lines, without context.
	Lines []GrepLine `json:"lines,omitempty"`
}

// GrepLine is a line that matched.
type GrepLine struct {
	Line int    `json:"line"`
	Text string `json:"text"`
}

// ShellView is the render data of shell.
type ShellView struct {
	Kind    string `json:"kind"` // "shell"
	Command string `json:"command"`
	// Description is the model's description of the command.
	Description string `json:"description,omitempty"`
	// ExitCode is the exit code. It is -1 if a signal ended the command; Signal then
	// names the signal.
	ExitCode int    `json:"exit_code"`
	Signal   string `json:"signal,omitempty"`
	// TimedOut and Aborted mean that Belay killed the command.
	TimedOut bool `json:"timed_out,omitempty"`
	Aborted  bool `json:"aborted,omitempty"`
	// Milliseconds is how long the command ran.
	Milliseconds int64 `json:"milliseconds"`
	// Bytes is the size of the output. Forgotten is how much of it was not kept.
	Bytes     int64 `json:"bytes"`
	Forgotten int64 `json:"forgotten,omitempty"`
	// LeftRunning means that a background process still has the output open.
	LeftRunning bool `json:"left_running,omitempty"`
}
