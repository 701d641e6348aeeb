#![no_main]
libfuzzer_sys::fuzz_target!(|d: &[u8]| { if d.len()>3 && d[0]==b'a' && d[1]==b'b' && d[2]==b'c' { let v = vec![1u8;3]; let p = v.as_ptr(); drop(v); let x = unsafe{*p}; std::hint::black_box(x); } });
