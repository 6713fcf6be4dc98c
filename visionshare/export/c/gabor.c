/* Absolute responses of Gabor filters, pooled over positions; zeros stand beside the image. */
static float $NAME$_pooled(struct $NAME$_work *work, int f)
{
    /* First tap, reach down and to the right, first of its rows and their number, of columns. */
    const int ry = (int)$NAME$_layout[7 * f + 1], rx = (int)$NAME$_layout[7 * f + 2];
    const int row_count = (int)$NAME$_layout[7 * f + 4], col_count = (int)$NAME$_layout[7 * f + 6];
    float pooled = 0.0f;
    int i, k;

    for (k = 0; k < row_count; k++) {
        const int y = (int)$NAME$_rows[$NAME$_layout[7 * f + 3] + k];
        const int top = y < ry ? 0 : y - ry;
        const int bottom = y + ry < $HEIGHT$ ? y + ry + 1 : $HEIGHT$;
        int v, dx;
        for (i = 0; i < col_count; i++) {
            work->responses[i] = 0.0f;
        }
        for (v = top; v < bottom; v++) {
            const float *line = work->grey + v * $STRIDE$ + $MARGIN$ - rx;
            for (dx = 0; dx <= 2 * rx; dx++) {
                const float tap = (float)$NAME$_taps[$NAME$_layout[7 * f]
                    + (v - y + ry) * (2 * rx + 1) + dx];
                for (i = 0; i < col_count; i++) {
                    work->responses[i] +=
                        tap * line[$NAME$_cols[$NAME$_layout[7 * f + 5] + i] + dx];
                }
            }
        }
        for (i = 0; i < col_count; i++) {
            const float size = work->responses[i] < 0.0f ? -work->responses[i] : work->responses[i];
            pooled = $POOL$;
        }
    }
    return pooled * $NAME$_scales[f];
}

static void $NAME$(const $PIXEL$ *image, struct $NAME$_work *work, float *features)
{
    int c, f, x, y;

    for (y = 0; y < $HEIGHT$; y++) {
        float *line = work->grey + y * $STRIDE$;
        for (x = 0; x < $STRIDE$; x++) {
            line[x] = 0.0f;
        }
        for (x = 0; x < $WIDTH$; x++) {
            float sum = 0.0f;
            for (c = 0; c < $CHANNELS$; c++) {
                sum += (float)image[(y * $WIDTH$ + x) * $CHANNELS$ + c];
            }
            line[$MARGIN$ + x] = sum * $UNIT$;
        }
    }
    for (f = 0; f < $FEATURES$; f++) {
        features[f] = $NAME$_pooled(work, f);
    }
}
