/* The features of several units, each in its place. */
static void $NAME$(const $PIXEL$ *image, struct $NAME$_work *work, float *features)
{
    int j;

$CALLS$
}
