package main

// The subagent archivist may do only what the user allows in the current turn. In the
// second turn it must not remember anything. In the third turn it does not run at all.
//
// SPEC E-08
func Example() {
	main()
	// Output:
	// > Plan a dinner for me.
	//   archivist: memory_search
	//   {"subagent":"archivist","content":"Ann is allergic to nuts, and likes the restaurant Da Enzo."}
	// I would book Da Enzo, and tell them about the nuts.
	// > I dine at eight, but do not remember that.
	//   archivist: memory_remember denied
	//   {"subagent":"archivist","content":"That may not be kept."}
	// As you wish, I have not kept it.
	// > Without your memory and without remembering this: where is the printer?
	//   subagent "archivist": denied by "memory.lend": the user or a policy does not allow memories in this turn
	// Then I do not know.
}
