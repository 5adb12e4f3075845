//! The functions of PnetCDF that are seen. Shapes of an access stand under one name, collective ones under one of
//! their own. Untyped forms say count and type of MPI in memory at their end.

use crate::calls::{attributes, of_each_type, wrapper};
use crate::rows::{Shape, What};

macro_rules! functions {
    ($($name:literal ($($argument:ident)*) $function:ident $what:expr;)*) => {
        $(wrapper!(PNETCDF, $name, ($($argument)*), $function, $what);)*
    };
}

functions! {
    "ncmpi_create" (a b c d e) NCMPI_CREATE What::Open(1);
    "ncmpi_open" (a b c d e) NCMPI_OPEN What::Open(1);
    "ncmpi_redef" (a) NCMPI_REDEF What::On;
    "ncmpi_enddef" (a) NCMPI_ENDDEF What::On;
    "ncmpi__enddef" (a b c d e) NCMPI_ENDDEF What::On;
    "ncmpi_sync" (a) NCMPI_SYNC What::On;
    "ncmpi_flush" (a) NCMPI_SYNC What::On;
    "ncmpi_sync_numrecs" (a) NCMPI_SYNC What::On;
    "ncmpi_close" (a) NCMPI_CLOSE What::Close;
    "ncmpi_abort" (a) NCMPI_ABORT What::Close;
    "ncmpi_wait" (a b c d) NCMPI_WAIT What::Wait;
    "ncmpi_wait_all" (a b c d) NCMPI_WAIT_ALL What::Wait;
    "ncmpi_cancel" (a b c d) NCMPI_WAIT What::Cancel;
    "ncmpi_put_vard" (a b c d e f) NCMPI_PUT What::Access(Shape::Unknown, 0);
    "ncmpi_put_vard_all" (a b c d e f) NCMPI_PUT_ALL What::Access(Shape::Unknown, 0);
    "ncmpi_get_vard" (a b c d e f) NCMPI_GET What::Access(Shape::Unknown, 0);
    "ncmpi_get_vard_all" (a b c d e f) NCMPI_GET_ALL What::Access(Shape::Unknown, 0);
}

attributes!(PNETCDF, "ncmpi_put_att" NCMPI_PUT_ATT, "ncmpi_get_att" NCMPI_GET_ATT);

/// One kind of access in all shapes of one variable.
macro_rules! of_each_shape {
    ($what:ident $end:literal $function:ident $last:tt
     [$var:literal $var1:literal $vara:literal $vars:literal $varm:literal $varn:literal]) => {
        of_each_shape!(one $what $end $function Whole $var (a b c) $last);
        of_each_shape!(one $what $end $function Element $var1 (a b c d) $last);
        of_each_shape!(one $what $end $function Part $vara (a b c d e) $last);
        of_each_shape!(one $what $end $function Part $vars (a b c d e f) $last);
        of_each_shape!(one $what $end $function Part $varm (a b c d e f g) $last);
        of_each_shape!(one $what $end $function Parts $varn (a b c d e f) $last);
    };
    (one $what:ident $end:literal $function:ident $shape:ident $start:literal ($($argument:ident)*) ()) => {
        of_each_type!(PNETCDF, $start, $end, ($($argument)*), also (x y), $function, $what, $shape);
    };
    // The place of the request's number is the last argument of all forms; names do not matter.
    (one $what:ident $end:literal $function:ident $shape:ident $start:literal ($($argument:ident)*) (request)) => {
        of_each_type!(PNETCDF, $start, $end, ($($argument)* request), also (x y), $function, $what, $shape);
    };
}

of_each_shape!(Access "" NCMPI_PUT ()
    ["ncmpi_put_var" "ncmpi_put_var1" "ncmpi_put_vara" "ncmpi_put_vars" "ncmpi_put_varm" "ncmpi_put_varn"]);
of_each_shape!(Access "_all" NCMPI_PUT_ALL ()
    ["ncmpi_put_var" "ncmpi_put_var1" "ncmpi_put_vara" "ncmpi_put_vars" "ncmpi_put_varm" "ncmpi_put_varn"]);
of_each_shape!(Access "" NCMPI_GET ()
    ["ncmpi_get_var" "ncmpi_get_var1" "ncmpi_get_vara" "ncmpi_get_vars" "ncmpi_get_varm" "ncmpi_get_varn"]);
of_each_shape!(Access "_all" NCMPI_GET_ALL ()
    ["ncmpi_get_var" "ncmpi_get_var1" "ncmpi_get_vara" "ncmpi_get_vars" "ncmpi_get_varm" "ncmpi_get_varn"]);
of_each_shape!(Post "" NCMPI_IPUT (request)
    ["ncmpi_iput_var" "ncmpi_iput_var1" "ncmpi_iput_vara" "ncmpi_iput_vars" "ncmpi_iput_varm" "ncmpi_iput_varn"]);
of_each_shape!(Post "" NCMPI_BPUT (request)
    ["ncmpi_bput_var" "ncmpi_bput_var1" "ncmpi_bput_vara" "ncmpi_bput_vars" "ncmpi_bput_varm" "ncmpi_bput_varn"]);
of_each_shape!(Post "" NCMPI_IGET (request)
    ["ncmpi_iget_var" "ncmpi_iget_var1" "ncmpi_iget_vara" "ncmpi_iget_vars" "ncmpi_iget_varm" "ncmpi_iget_varn"]);

/// Accesses to several variables.
macro_rules! of_several {
    ($($end:literal $function:ident
     [$var:literal $var1:literal $vara:literal $vars:literal $varm:literal];)*) => { $(
        of_each_type!(PNETCDF, $var, $end, (a b c d), also (x y), $function, AccessSeveral, Whole);
        of_each_type!(PNETCDF, $var1, $end, (a b c d e), also (x y), $function, AccessSeveral, Element);
        of_each_type!(PNETCDF, $vara, $end, (a b c d e f), also (x y), $function, AccessSeveral, Part);
        of_each_type!(PNETCDF, $vars, $end, (a b c d e f g), also (x y), $function, AccessSeveral, Part);
        of_each_type!(PNETCDF, $varm, $end, (a b c d e f g h), also (x y), $function, AccessSeveral, Part);
    )* };
}

of_several! {
    "" NCMPI_PUT ["ncmpi_mput_var" "ncmpi_mput_var1" "ncmpi_mput_vara" "ncmpi_mput_vars" "ncmpi_mput_varm"];
    "_all" NCMPI_PUT_ALL ["ncmpi_mput_var" "ncmpi_mput_var1" "ncmpi_mput_vara" "ncmpi_mput_vars" "ncmpi_mput_varm"];
    "" NCMPI_GET ["ncmpi_mget_var" "ncmpi_mget_var1" "ncmpi_mget_vara" "ncmpi_mget_vars" "ncmpi_mget_varm"];
    "_all" NCMPI_GET_ALL ["ncmpi_mget_var" "ncmpi_mget_var1" "ncmpi_mget_vara" "ncmpi_mget_vars" "ncmpi_mget_varm"];
}
