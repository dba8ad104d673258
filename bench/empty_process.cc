// The floor: what a static process costs that does nothing.
int main() { return 0; }
