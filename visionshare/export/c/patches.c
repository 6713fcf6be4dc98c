/* Largest responses of templates, weighted by masks: position by position of a template's
   rectangle, in tiles of rows and columns that a compiler keeps in vector registers. */
enum {
    $NAME$_ROWS = $MACRO$_ONE_BY_ONE ? 1 : 8,
    $NAME$_LANES = $MACRO$_ONE_BY_ONE ? 1 : 8
};

static void $NAME$_tile(const $PREFIX$_cell *canvas, const $TAP$ *taps, int first, int last,
    const $WEIGHT$ *weights, int shift, $SUM$ *restrict profile)
{
#if $MACRO$_ONE_BY_ONE
    $SUM$ sum = 0;
    int c, dy, dx;

    (void)shift;
    for (c = 0; c < $CHANNELS$; c++) {
        for (dy = first; dy < last; dy++) {
            const $PREFIX$_cell *p = canvas + c * $PLANE$ + dy * $STRIDE$;
            const $TAP$ *t = taps + (c * $SIZE$ + dy) * $SIZE$;
            for (dx = 0; dx < $SIZE$; dx++) {
                sum += ($SUM$)t[dx] * ($SUM$)p[dx];
            }
        }
    }
    sum = $RESPONSE$(sum, shift) * ($SUM$)weights[0];
    profile[0] = $MACRO$_LARGER(profile[0], sum);
#else
    float a[8], b[8], c[8], d[8], e[8], f[8], g[8], h[8];
    int plane, dy, dx, i;

    (void)shift;
    for (i = 0; i < 8; i++) {
        a[i] = b[i] = c[i] = d[i] = e[i] = f[i] = g[i] = h[i] = 0;
    }
#ifdef __AVX512VL__
    /* 32 registers hold eight sums and the rows of pixels under them, which slide by a row a tap:
       a row is loaded once a column of taps. */
    for (plane = 0; plane < $CHANNELS$ && first < last; plane++) {
        $PLANE_OF_TAPS$
        for (dx = 0; dx < $SIZE$; dx++) {
            const $PREFIX$_cell *p = canvas + plane * $PLANE$ + first * $STRIDE$ + dx;
            float q[8], r[8], s[8], t[8], u[8], v[8], w[8];
            for (i = 0; i < 8; i++) {
                q[i] = p[i];
                r[i] = p[$STRIDE$ + i];
                s[i] = p[2 * $STRIDE$ + i];
                t[i] = p[3 * $STRIDE$ + i];
                u[i] = p[4 * $STRIDE$ + i];
                v[i] = p[5 * $STRIDE$ + i];
                w[i] = p[6 * $STRIDE$ + i];
            }
            for (dy = first; dy < last; dy++) {
                const float tap = held[dy * $SIZE$ + dx];
                for (i = 0; i < 8; i++) {
                    const float next = p[7 * $STRIDE$ + i];
                    a[i] += tap * q[i];
                    b[i] += tap * r[i];
                    c[i] += tap * s[i];
                    d[i] += tap * t[i];
                    e[i] += tap * u[i];
                    f[i] += tap * v[i];
                    g[i] += tap * w[i];
                    h[i] += tap * next;
                    q[i] = r[i];
                    r[i] = s[i];
                    s[i] = t[i];
                    t[i] = u[i];
                    u[i] = v[i];
                    v[i] = w[i];
                    w[i] = next;
                }
                p += $STRIDE$;
            }
        }
    }
#else
    for (plane = 0; plane < $CHANNELS$; plane++) {
        for (dy = first; dy < last; dy++) {
            $ROW_OF_TAPS$
            for (dx = 0; dx < $SIZE$; dx++) {
                const float tap = row[dx];
                const $PREFIX$_cell *p = canvas + plane * $PLANE$ + dy * $STRIDE$ + dx;
                for (i = 0; i < 8; i++) {
                    a[i] += tap * p[i];
                    b[i] += tap * p[$STRIDE$ + i];
                    c[i] += tap * p[2 * $STRIDE$ + i];
                    d[i] += tap * p[3 * $STRIDE$ + i];
                    e[i] += tap * p[4 * $STRIDE$ + i];
                    f[i] += tap * p[5 * $STRIDE$ + i];
                    g[i] += tap * p[6 * $STRIDE$ + i];
                    h[i] += tap * p[7 * $STRIDE$ + i];
                }
            }
        }
    }
#endif
    for (i = 0; i < 8; i++) {
        const $SUM$ a0 = $RESPONSE$(($SUM$)a[i], shift) * ($SUM$)weights[0];
        const $SUM$ b0 = $RESPONSE$(($SUM$)b[i], shift) * ($SUM$)weights[1];
        const $SUM$ c0 = $RESPONSE$(($SUM$)c[i], shift) * ($SUM$)weights[2];
        const $SUM$ d0 = $RESPONSE$(($SUM$)d[i], shift) * ($SUM$)weights[3];
        const $SUM$ e0 = $RESPONSE$(($SUM$)e[i], shift) * ($SUM$)weights[4];
        const $SUM$ f0 = $RESPONSE$(($SUM$)f[i], shift) * ($SUM$)weights[5];
        const $SUM$ g0 = $RESPONSE$(($SUM$)g[i], shift) * ($SUM$)weights[6];
        const $SUM$ h0 = $RESPONSE$(($SUM$)h[i], shift) * ($SUM$)weights[7];
        const $SUM$ ab = $MACRO$_LARGER(a0, b0), cd = $MACRO$_LARGER(c0, d0);
        const $SUM$ ef = $MACRO$_LARGER(e0, f0), gh = $MACRO$_LARGER(g0, h0);
        const $SUM$ ad = $MACRO$_LARGER(ab, cd), eh = $MACRO$_LARGER(ef, gh);
        const $SUM$ ah = $MACRO$_LARGER(ad, eh);
        profile[i] = $MACRO$_LARGER(profile[i], ah);
    }
#endif
}

/* Where tiles begin so that they cover [begin, end) and, where they can, end within the axis. */
static int $NAME$_start(int begin, int end, int side, int positions)
{
    const int over = begin + (end - begin + side - 1) / side * side - positions;

    return over <= 0 ? begin : (over < begin ? begin - over : 0);
}

static float $NAME$_feature(const struct $NAME$_work *work, int j, int top, int bottom)
{
    const $SPAN$ *f = $NAME$_layout + 7 * j;
    const $TAP$ *taps = $NAME$_taps + f[0] * $TAPS$;
    const $WEIGHT$ *rows = $NAME$_row_masks + f[1] * $ROWS$;
    const $WEIGHT$ *cols = $NAME$_col_masks + f[4] * $COLS$;
    const int shift = $SHIFT$;
    const int y0 = $NAME$_start(f[2], f[3], $NAME$_ROWS, $POSITION_ROWS$);
    const int x0 = $NAME$_start(f[5], f[6], $NAME$_LANES, $POSITION_COLS$);
    $SUM$ best = 0;
    int x, y, i;

    for (x = x0; x < f[6]; x += $NAME$_LANES) {
        $SUM$ profile[$NAME$_LANES];
        for (i = 0; i < $NAME$_LANES; i++) {
            profile[i] = 0;
        }
        for (y = y0; y < f[3]; y += $NAME$_ROWS) {
            /* Rows of the image outside [top, bottom) are empty and add nothing. */
            const int low = top - (y + $NAME$_ROWS - 1), high = bottom - y;
            $NAME$_tile(work->canvas + y * $STRIDE$ + x, taps, $MACRO$_LARGER(low, 0),
                high < $SIZE$ ? high : $SIZE$, rows + y, shift, profile);
        }
        for (i = 0; i < $NAME$_LANES; i++) {
            const $SUM$ value = $MASKED$(profile[i]) * ($SUM$)cols[x + i];
            best = $MACRO$_LARGER(best, value);
        }
    }
    return (float)best$SCALE$;
}

static void $NAME$(const $PIXEL$ *image, struct $NAME$_work *work, float *features)
{
    int top = $HEIGHT$ + $PAD_Y$, bottom = 0, c, y, x, j;

    for (j = 0; j < $CHANNELS$ * $PLANE$; j++) {
        work->canvas[j] = 0;
    }
    for (y = 0; y < $HEIGHT$; y++) {
        int seen = 0;
        for (c = 0; c < $CHANNELS$; c++) {
            $PREFIX$_cell *row = work->canvas + c * $PLANE$ + (y + $PAD_Y$) * $STRIDE$ + $PAD_X$;
            const $PIXEL$ *from = image + y * $WIDTH$ * $CHANNELS$ + c;
            for (x = 0; x < $WIDTH$; x++) {
                row[x] = ($PREFIX$_cell)from[x * $CHANNELS$]$UNIT$;
                seen |= from[x * $CHANNELS$] != 0;
            }
        }
        if (seen) {
            top = top < y + $PAD_Y$ ? top : y + $PAD_Y$;
            bottom = y + $PAD_Y$ + 1;
        }
    }
    for (j = 0; j < $FEATURES$; j++) {
        features[j] = $NAME$_feature(work, j, top, bottom);
    }
}
