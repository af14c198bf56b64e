// SPDX-License-Identifier: GPL-2.0-only OR MIT
//! Finds libbulkmm: in BULKMM_LIB_DIR, or else with pkg-config.
use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=BULKMM_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    println!("cargo:rustc-link-lib=bulkmm");
    if let Ok(place) = env::var("BULKMM_LIB_DIR") {
        println!("cargo:rustc-link-search=native={place}");
        return;
    }
    let said = Command::new("pkg-config")
        .args(["--libs-only-L", "bulkmm"])
        .output();
    match said {
        Ok(said) if said.status.success() => {
            for flag in String::from_utf8_lossy(&said.stdout).split_whitespace() {
                if let Some(place) = flag.strip_prefix("-L") {
                    println!("cargo:rustc-link-search=native={place}");
                }
            }
        }
        _ => println!("cargo:warning=pkg-config knows no bulkmm: set BULKMM_LIB_DIR"),
    }
}
