# SPDX-License-Identifier: Apache-2.0
# Turns a text file into a C string: cmake -DIN=page.html -DOUT=page.c -DNAME=timeline_page -P embed.cmake
cmake_minimum_required(VERSION 3.25) # a script has no policies of the project
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
file(WRITE ${OUT} "/* Generated from ${IN}. */\nextern const char ${NAME}[];\nconst char ${NAME}[] = {${bytes}0};\n")
