# cmake -DTEXT=file -DNAME=kName -DCPP=file.cpp -P EmbedText.cmake
#
# Writes a source file that defines symm::kName, the text of a file, so that a program can use it
# on any machine.
file(READ "${TEXT}" text)
file(WRITE "${CPP}" "namespace symm {\nextern const char ${NAME}[];\n"
     "const char ${NAME}[] = R\"text(${text})text\";\n}  // namespace symm\n")
