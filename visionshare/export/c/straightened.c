/* The slant of the image goes: its rows move about its centre of mass. */
static void $NAME$(const $PIXEL$ *image, struct $NAME$_work *work, float *features)
{
    double mass = 0, first = 0, second = 0, across = 0, both = 0, slant = 0, middle = 0;
    int c, x, y;

    for (y = 0; y < $ROWS$; y++) {
        double own = 0, moment = 0;
        for (x = 0; x < $COLS$; x++) {
            double weight = 0;
            for (c = 0; c < $CHANNELS$; c++) {
                double value = (double)image[(y * $COLS$ + x) * $CHANNELS$ + c];
                weight += value > 0 ? value : 0;
            }
            own += weight;
            moment += weight * x;
        }
        mass += own;
        first += own * y;
        second += own * y * y;
        across += moment;
        both += moment * y;
    }
    if (mass > 0) {
        double spread;
        middle = first / mass;
        spread = second - first * middle;
        if (spread > 1e-9 * second) {
            slant = (both - across * middle) / spread;
            slant = slant > 1 ? 1 : slant < -1 ? -1 : slant;
        }
    }
    for (y = 0; y < $ROWS$; y++) {
        double move = slant * (y - middle);
        int start = (int)move - (move < (int)move);
        float right = (float)(move - start), left = 1.0f - right;
        for (x = 0; x < $COLS$; x++) {
            int a = x + start, b = a + 1;
            for (c = 0; c < $CHANNELS$; c++) {
                float value = $HALF$;
                if (a >= 0 && a < $COLS$) {
                    value += left * (float)image[(y * $COLS$ + a) * $CHANNELS$ + c];
                }
                if (b >= 0 && b < $COLS$) {
                    value += right * (float)image[(y * $COLS$ + b) * $CHANNELS$ + c];
                }
                work->straight[(y * $COLS$ + x) * $CHANNELS$ + c] = ($PIXEL$)value;
            }
        }
    }
    $PART$(work->straight, &work->inner.$PART$, features);
}
