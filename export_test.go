package belay

// NewTransientStore lets the suite of stores see the one that agents have
// without any.
func NewTransientStore() Store { return newTransientStore() }
