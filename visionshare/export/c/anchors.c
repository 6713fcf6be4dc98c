/* Functions of the distances of the scaled inputs to anchors. */
static void $NAME$(const $PIXEL$ *image, struct $NAME$_work *work, float *features)
{
    int a, i, j;

    for (j = 0; j < $LENGTH$; j++) {
        work->vector[j] = 0;
    }
    for (i = 0; i < $INPUTS$; i++) {
        $MACRO$_SUM value = (($MACRO$_SUM)image[i] - ($MACRO$_SUM)$NAME$_offset[i])
            * ($MACRO$_SUM)$NAME$_scale[i];
        $INPUT$
    }$ROUNDED$
    for (a = 0; a < $ANCHORS$; a++) {
        work->squares[a] = 0;
    }
    for (i = 0; i < $LENGTH$; i++) {
        const $MACRO$_SUM value = work->vector[i];
        for (a = 0; a < $ANCHORS$; a++) {
            const $MACRO$_SUM difference =
                value - ($MACRO$_SUM)$NAME$_anchors[i * $ANCHORS$ + a]$ANCHOR_STEP$;
            work->squares[a] += difference * difference;
        }
    }
    for (j = 0; j < $FEATURES$; j++) {
        features[j] = $FEATURE$;
    }
}
