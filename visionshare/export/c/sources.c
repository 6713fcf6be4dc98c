/* Scores of classifiers. */
static void $NAME$(const $PIXEL$ *image, struct $NAME$_work *work, float *features)
{
    int i, j;

$CALLS$
}
