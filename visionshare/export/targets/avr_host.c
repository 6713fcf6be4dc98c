/* Runs a classifier in simavr: for each image of a file prints label, instructions, cycles and the
   bytes of the scores; at last the bytes of stack. simavr has lines of its own. */
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>
#include <stdio.h>
#include <stdlib.h>

enum { UNTOUCHED = 0xa5 };

/* Run until the program waits for an image; return the instructions. */
static unsigned long run(avr_t *avr, int state)
{
    unsigned long instructions = 0;

    do {
        const int now = avr_run(avr);
        if (now == cpu_Done || now == cpu_Crashed || ++instructions > 4000000000ul) {
            fprintf(stderr, "error: the program stopped\n");
            exit(1);
        }
    } while (avr->data[state] != 1);
    return instructions;
}

int main(int count, char **arguments)
{
    static elf_firmware_t firmware;
    const char *program = arguments[1];
    const int state = atoi(arguments[4]), label = atoi(arguments[5]), scores = atoi(arguments[6]);
    const int pointer = atoi(arguments[7]), end = atoi(arguments[8]);
    const size_t bytes = (size_t)atoi(arguments[9]);
    const int n_scores = atoi(arguments[10]);
    FILE *const images = fopen(arguments[3], "rb");
    avr_t *const avr = avr_make_mcu_by_name(arguments[2]);
    int i;

    if (count != 11 || avr == NULL || images == NULL || elf_read_firmware(program, &firmware) != 0) {
        fprintf(stderr, "error: no such core or file\n");
        return 1;
    }
    avr_init(avr);
    avr->log = 0;
    avr_load_firmware(avr, &firmware);
    if (end >= avr->ramend) {
        fprintf(stderr, "error: %d bytes of variables, more than the memory of the core\n", end);
        return 1;
    }
    for (i = end; i <= avr->ramend; i++) {
        avr->data[i] = UNTOUCHED;
    }
    run(avr, state);
    for (;;) {
        uint8_t *const image = avr->data + (avr->data[pointer] | avr->data[pointer + 1] << 8);
        avr_cycle_count_t before;
        unsigned long instructions;

        if (fread(image, 1, bytes, images) != bytes) {
            break;
        }
        avr->data[state] = 2;
        before = avr->cycle;
        instructions = run(avr, state);
        printf("= %d %lu %lu ", avr->data[label] | avr->data[label + 1] << 8, instructions, (unsigned long)(avr->cycle - before));
        for (i = 0; i < n_scores; i++) {
            printf("%02x", avr->data[scores + i]);
        }
        printf("\n");
    }
    for (i = end; i <= avr->ramend && avr->data[i] == UNTOUCHED; i++) {
    }
    if (i == end) {
        fprintf(stderr, "error: the stack ran over the variables\n");
        return 1;
    }
    printf("= %d\n", avr->ramend + 1 - i);
    return 0;
}
