//! The functions of NetCDF-C that are seen (`nc_def_var` for the strategy alone). `nc_create_par` and `nc_open_par` are of its parallel builds.

use crate::calls::{attributes, of_each_type, wrapper};
use crate::rows::What;

macro_rules! functions {
    ($($name:literal ($($argument:ident)*) $function:ident $what:expr;)*) => {
        $(wrapper!(NETCDF_C, $name, ($($argument)*), $function, $what);)*
    };
}

functions! {
    "nc_create" (a b c) NC_CREATE What::Open(0);
    "nc__create" (a b c d e) NC_CREATE What::Open(0);
    "nc_create_mem" (a b c d) NC_CREATE What::Open(0);
    "nc_create_par" (a b c d e) NC_CREATE What::Open(0);
    "nc_create_par_fortran" (a b c d e) NC_CREATE What::Open(0);
    "nc_open" (a b c) NC_OPEN What::Open(0);
    "nc__open" (a b c d) NC_OPEN What::Open(0);
    "nc_open_mem" (a b c d e) NC_OPEN What::Open(0);
    "nc_open_memio" (a b c d) NC_OPEN What::Open(0);
    "nc_open_par" (a b c d e) NC_OPEN What::Open(0);
    "nc_open_par_fortran" (a b c d e) NC_OPEN What::Open(0);
    "nc_def_var" (a b c d e f) NC_ENDDEF What::Define;
    "nc_redef" (a) NC_REDEF What::On;
    "nc_enddef" (a) NC_ENDDEF What::On;
    "nc__enddef" (a b c d e) NC_ENDDEF What::On;
    "nc_sync" (a) NC_SYNC What::On;
    "nc_close" (a) NC_CLOSE What::Close;
    "nc_close_memio" (a b) NC_CLOSE What::Close;
    "nc_abort" (a) NC_ABORT What::Close;
}

attributes!(NETCDF_C, "nc_put_att" NC_PUT_ATT, "nc_get_att" NC_GET_ATT);

macro_rules! accesses {
    ($($start:literal $function:ident $shape:ident $arguments:tt;)*) => {
        $(of_each_type!(NETCDF_C, $start, "", $arguments, also (), $function, Access, $shape);)*
    };
}

accesses! {
    "nc_put_var" NC_PUT_VAR Whole (a b c);
    "nc_put_var1" NC_PUT_VAR1 Element (a b c d);
    "nc_put_vara" NC_PUT_VARA Part (a b c d e);
    "nc_put_vars" NC_PUT_VARS Part (a b c d e f);
    "nc_put_varm" NC_PUT_VARM Part (a b c d e f g);
    "nc_get_var" NC_GET_VAR Whole (a b c);
    "nc_get_var1" NC_GET_VAR1 Element (a b c d);
    "nc_get_vara" NC_GET_VARA Part (a b c d e);
    "nc_get_vars" NC_GET_VARS Part (a b c d e f);
    "nc_get_varm" NC_GET_VARM Part (a b c d e f g);
}
