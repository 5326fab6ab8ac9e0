package toolbox

// The View types are the render data of results, for programs that show them to
// people. Kind is the first key of each and names the type.

// ReadView is the render data of read.
type ReadView struct {
	Kind string `json:"kind"` // "read"
	Path string `json:"path"`
	// From and To are the lines that were shown, counted from 1; both are 0 if
	// none were.
	From int `json:"from"`
	To   int `json:"to"`
	// Lines is the number of lines in the file, or 0 if it is too large to count.
	Lines int `json:"lines"`
	// MIME is the type of an image.
	MIME string `json:"mime,omitempty"`
}

// ChangeView is the render data of write and edit.
type ChangeView struct {
	Kind string `json:"kind"` // "change"
	Path string `json:"path"`
	// Action is created, overwritten, edited or unchanged.
	Action string `json:"action"`
	// Diff is in the unified format. Cut means that it is not complete.
	Diff string `json:"diff"`
	Cut  bool   `json:"cut,omitempty"`
	// Added and Removed count lines.
	Added   int `json:"added"`
	Removed int `json:"removed"`
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
	// Files are the listed files, the most recently changed first, out of Total.
	Files []string `json:"files"`
	Total int      `json:"total"`
}

// GrepView is the render data of grep.
type GrepView struct {
	Kind    string `json:"kind"` // "grep"
	Pattern string `json:"pattern"`
	// Files are the files with a match, in the order of the text.
	Files []GrepFile `json:"files"`
	// Matches counts the lines that matched.
	Matches int `json:"matches"`
	// Cut means that the search ended at its limit.
	Cut bool `json:"cut,omitempty"`
}

// GrepFile is a file with matches.
type GrepFile struct {
	Path string `json:"path"`
	// Count is how many lines matched.
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
	// ExitCode is -1 if a signal ended the command, and Signal is that signal.
	ExitCode int    `json:"exit_code"`
	Signal   string `json:"signal,omitempty"`
	// TimedOut and Aborted mean that it was killed.
	TimedOut bool `json:"timed_out,omitempty"`
	Aborted  bool `json:"aborted,omitempty"`
	// Milliseconds is how long it took.
	Milliseconds int64 `json:"milliseconds"`
	// Bytes is how much it wrote, and Forgotten how much of that is lost.
	Bytes     int64 `json:"bytes"`
	Forgotten int64 `json:"forgotten,omitempty"`
	// LeftRunning means that a background process still holds its output open.
	LeftRunning bool `json:"left_running,omitempty"`
}
