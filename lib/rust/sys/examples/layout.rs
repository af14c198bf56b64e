// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Prints the offset of each field, to be compared with C's.
use bulkmm_sys::{bmm_file, bmm_image, bmm_memory, bmm_options, bmm_range, bmm_report};
use std::mem::{offset_of, size_of};

macro_rules! print_fields {
    ($kind:ident: $($field:ident)*) => {
        println!("{} {}", stringify!($kind), size_of::<$kind>());
        $(println!("{}.{} {}", stringify!($kind), stringify!($field),
                   offset_of!($kind, $field));)*
    };
}

fn main() {
    print_fields!(bmm_file: path offset len);
    print_fields!(bmm_image: size stepping word step);
    print_fields!(bmm_memory: size page len failed at fd);
    print_fields!(bmm_options: size flags threads node progress context ready piece);
    print_fields!(bmm_range: addr len flags node);
    print_fields!(bmm_report: size done reached failed failed_len ns slow slow_len slow_ns
                  usual_ns error cause slow_cause threads touched huge
                  small);
}
