// Stands for Gloo's header of this name; see README.md.
#pragma once
